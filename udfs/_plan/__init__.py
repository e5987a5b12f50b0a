"""Code that runs only on the driver: it builds and watches queries."""

"""The plan: what runs on the driver only, while a query is built and watched."""

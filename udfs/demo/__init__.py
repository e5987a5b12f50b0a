"""The demo: a Spark job that looks up the weather and the aircraft of real flights over HTTP."""

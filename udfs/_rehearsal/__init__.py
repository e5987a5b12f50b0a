"""Forecasts of jobs. `job` has the public function; `sample` and `forecast` are its two steps."""

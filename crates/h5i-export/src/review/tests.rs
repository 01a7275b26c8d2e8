mod hostile;
mod round_trip;
mod rules;

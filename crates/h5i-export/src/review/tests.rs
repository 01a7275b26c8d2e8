mod hostile;
mod overlay;
mod round_trip;
mod rules;

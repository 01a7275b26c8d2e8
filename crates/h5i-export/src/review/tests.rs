mod hostile;
mod overlay;
mod renames;
mod round_trip;
mod rules;

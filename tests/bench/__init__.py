"""`make bench`: what the project promises about speed and memory, measured on real graphs. Never a test."""

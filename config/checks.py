"""System checks for settings that contradict each other or open a door."""

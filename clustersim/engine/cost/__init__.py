"""What ops take alone on a device."""

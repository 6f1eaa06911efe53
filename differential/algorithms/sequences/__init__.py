"""What is computed along an order."""

"""What tests of every room are made of."""

"""What outputs keep besides their rows, and how readers ask for a part of them."""

"""What a page that shows a cluster costs."""

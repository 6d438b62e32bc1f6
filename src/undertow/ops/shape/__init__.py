"""The same elements in another shape or order: views, joins, copies, padding."""

"""Values as text: what a person types, as a column's physical value, and back."""

"""stoic where people work. Nothing else in the package imports from here but the user's loop."""

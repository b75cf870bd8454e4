"""What this machine has, what machines can be rented, and what each costs."""

__all__: list[str] = []

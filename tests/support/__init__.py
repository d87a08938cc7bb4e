"""What tests share: tables of every type, footers taken apart and put together, engines."""

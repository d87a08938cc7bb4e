"""Real object stores on this machine: servers, their installation, and a proxy that records, delays and breaks
requests."""

"""Reports: pictures and tables from bundles."""

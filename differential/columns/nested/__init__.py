"""Arrays, structs and maps: values with parts of declared types."""

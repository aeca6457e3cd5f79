"""Tools from OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 documents, one per operation."""

"""One module for each resource: routes, request models and response models."""

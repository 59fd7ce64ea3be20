"""The page in a real browser, before a real server. A package, so that both end with the last of these tests."""

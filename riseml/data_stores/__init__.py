"""Data from object stores and web servers: which addresses the server may fetch, how, and the cache that keeps them.

`store_file` reads the user's stores.yml, `remote` reads lists and bytes of one address, `data_cache` keeps what was
fetched, `fetch` brings an address into the cache. Nothing here knows experiments' states or hosts.
"""

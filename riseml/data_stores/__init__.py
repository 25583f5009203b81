"""Data from object stores and web servers, and outputs that the server saves in object stores.

`store_file` reads the user's stores.yml, `remote` reads lists and bytes of one address, `data_cache` keeps what was
fetched, `fetch` brings an address into the cache. `save_output` copies an output into a store, `restore_output` brings
it back, and `save_manifest` names what is there. Nothing here knows experiments' states or hosts.
"""

"""The pages of docs/ as a site: `make docs` writes it to build/site.

The Markdown of the repository stays as it is, so that it reads the same on a forge and in `riseml docs`. docs/README.md
is the list of pages: its sections are those of the site. Zensical makes the HTML; a link that leads nowhere, or a page
that no section lists, fails the build.
"""

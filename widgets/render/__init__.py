"""Renders a report or a job's ranks as a page, picture, text and static output."""

"""What only the main job needs: its file format, data made up for it, and a check of its times.

interactions.py      a file of timed interactions, every line checked
stray_times.py       a time far off all others is refused
mention_stream.py    a made-up week of mentions, for machines without data
"""

"""Mentions between users, read from files and made up; `interactions`, `epoch_lines` and `stray_times` belong
to the main job.

interactions.py      a file of timed interactions, every line checked
epoch_lines.py       the report on each epoch
stray_times.py       a time far off all others is refused
mention_stream.py    a made-up week of mentions, for machines without data
tweets.py            a file of tweets with hashtags, a week of them made up, and windows over them
"""

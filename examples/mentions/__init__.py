"""What is read, and made up, of who mentions whom; `interactions`, `epoch_lines` and
`stray_times` are the main job's.

interactions.py      a file of timed interactions, every line checked
epoch_lines.py       what is said about each epoch
stray_times.py       a time far off all others is refused
mention_stream.py    a made-up week of mentions, for machines without data
tweets.py            a file of tweets with hashtags, a week of them made up, and windows over them
"""

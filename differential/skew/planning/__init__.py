"""When loads are uneven: what moves where. Pure functions of counts; nothing here moves a row.

Read `loads.py` (what is counted, θ), `draft.py` (what a plan changes), `moving.py` (H1 to H3), `plans.py`
(ISM and S2SM), `controller.py` (loads in, announcements out), in that order.
"""

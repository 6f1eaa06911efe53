"""Plan what moves where when loads are uneven: pure functions of counts. Nothing here moves a row.

Read `loads.py` (what is counted, θ), `draft.py` (what a plan changes), `moving.py` (H1 to H3), `plans.py`
(ISM and S2SM), `controller.py` (loads in, announcements out), in that order.
"""

"""Parts of reduces beside their machine: functions of groups, and groups whose sums do not fit."""

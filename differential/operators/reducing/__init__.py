"""What reduces need beside their machine: functions of groups, groups whose sums do not fit."""

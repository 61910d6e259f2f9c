"""Jobs of several processes: each rank writes a file or a TORCH_TRACE log, and all of them are merged into one RanksReport.

`identity` finds out which rank this process is; `rank_file` writes and reads the file of one rank; `recorder` keeps the file of
a running rank up to date, so that a rank that is killed leaves one, too; `quick_trace_reader` reads TORCH_TRACE logs and parses
only one of several equal logs; `folder` reads the folder of a job, and starts `worker` processes that help to read logs.
"""

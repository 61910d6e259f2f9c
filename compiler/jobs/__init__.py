"""Jobs of several processes: each rank writes a file of its own, and a reader merges what is there into one RanksReport.

`identity` knows which rank this process is; `rank_file` writes and reads the file of one rank; `recorder` records a rank and
keeps its file up to date, so that a rank that is killed leaves one, too; `quick_trace_reader` reads TORCH_TRACE logs at the
cost of a hash; `folder` reads the folder of a job.
"""

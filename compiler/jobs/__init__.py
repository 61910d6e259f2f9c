"""Jobs of several processes: each rank writes a file, and the reader of the job's folder merges the files into one RanksReport.

`identity` finds out which rank this process is; `rank_file` writes and reads the file of one rank; `recorder` records a rank
and keeps its file up to date, so that a rank that is killed leaves one, too; `quick_trace_reader` reads TORCH_TRACE logs, and
parses one of several equal logs only; `folder` reads the folder of a job; `worker` is the process that helps it to read logs.
"""

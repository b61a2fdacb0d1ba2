"""The placer: hears wishes, status and commits; decides which job is placed where, and when a job
has started, finished or failed.

`machine` is its mind. `wishes` and `operators` answer, `jobqueue` and `placing` place, `blocks`
says why not, `reports` holds what nodes say of workers, `verdicts` and `starts` judge it.
"""

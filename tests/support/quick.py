"""The settings of a live cell of tests: small racks, short times."""

from rackwright.wire.policy import Policy

LEASE_S = 10.0  # other work on a slow machine must not cost a lease
POLICY = Policy(
    # Small cells are filled with pinned and interactive work on purpose.
    pinned_share=1.0,
    interactive_job_gpus=10_000,
    interactive_owner_gpus=10_000,
    slice_nodes=4,
    spares_large=2,
    spares_small=2,
    heartbeat_s=0.5,
    suspect_after_s=3.0,
    fence_after_s=LEASE_S,
    fresh_s=1.0,
    kill_s=0.5,
    symptom_window_s=1.0,
    exit_verdict_s=0.5,
    probation_s=0.0,
    lemon_faults=1000,
    breaker_min=1000,
    block_repeat_s=0.2,
    retry_backoff_s=0.1,
    recovery_notice_s=0.0,
    # Small racks are without spares most of the time; moves for that are a matter of their own.
    zero_spare_move_s=30 * 86_400.0,
    defrag_delay_s=0.3,
    defrag_notice_s=10.0,
    defrag_drain_s=0.5,
    defrag_min_runtime_s=0.0,
    defrag_cooldown_s=0.0,
    defrag_max_share=1.0,
    defrag_per_hour=1000,
    defrag_max_repeats=1000,
)

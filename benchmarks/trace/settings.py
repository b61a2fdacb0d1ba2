"""The policy of a cell whose jobs run many times faster than recorded ones.

Everything that is weighed against the length of jobs is divided by the same speed, so that each
decision falls as it would at full length. What depends on real processes and a real bus is not:
leases, silence, starts.
"""

from rackwright.wire.policy import Policy

SLACK_S = 120.0  # a slow machine ends no job by its limit
ANY = 1_000_000
DEFAULTS = Policy()


def hastened(speed: float) -> Policy:
    """The default policy at `speed`; times that stay real are those of a small cell."""
    usual = DEFAULTS
    return Policy(
        # A fifth of the recorded jobs, of any size, is taken for interactive.
        pinned_share=1.0,
        interactive_job_gpus=ANY,
        interactive_owner_gpus=ANY,
        time_limit_batch_s=usual.time_limit_batch_s / speed + SLACK_S,
        time_limit_interactive_s=usual.time_limit_interactive_s / speed + SLACK_S,
        time_limit_pinned_s=usual.time_limit_pinned_s / speed + SLACK_S,
        lent_grace_s=usual.lent_grace_s / speed,
        block_repeat_s=1.0,
        retry_backoff_s=0.5,
        retry_backoff_max_s=5.0,
        heartbeat_s=1.0,
        suspect_after_s=5.0,
        fence_after_s=10.0,
        fresh_s=3.0,
        kill_s=1.0,
        symptom_window_s=0.5,
        exit_verdict_s=0.5,
        probation_s=usual.probation_s / speed,
        probation_max_s=usual.probation_max_s / speed,
        breaker_window_s=usual.breaker_window_s / speed,
        breaker_close_s=usual.breaker_close_s / speed,
        poison_window_s=usual.poison_window_s / speed,
        swap_start_s=20.0,
        rejoin_s=40.0,
        swap_cost_s=usual.swap_cost_s / speed,
        move_cost_s=usual.move_cost_s / speed,
        restart_in_place_s=usual.restart_in_place_s / speed,
        recovery_notice_s=usual.recovery_notice_s / speed,
        defrag_delay_s=usual.defrag_delay_s / speed,
        defrag_wait0_s=usual.defrag_wait0_s / speed,
        defrag_notice_s=usual.defrag_notice_s / speed,
        defrag_drain_s=usual.defrag_drain_s / speed,
        defrag_expiry_s=20.0,
        defrag_victim_cost_gpu_h=usual.defrag_victim_cost_gpu_h / speed,
        defrag_min_runtime_s=usual.defrag_min_runtime_s / speed,
        defrag_cooldown_s=usual.defrag_cooldown_s / speed,
        defrag_slice_move_s=usual.defrag_slice_move_s / speed,
        defrag_near_limit_s=usual.defrag_near_limit_s / speed,
        # The share of the 140 racks for which the default was found, in GPUs.
        defrag_max_share=0.08,
        defrag_per_hour=round(usual.defrag_per_hour * speed),
    )

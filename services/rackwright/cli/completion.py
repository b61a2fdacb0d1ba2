"""`rackwright completion`: the script that completes its words in a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL (bash, zsh, fish): commands and options, no job ids.

    \b
    Examples:
      rackwright completion bash >> ~/.bashrc
      rackwright completion fish > ~/.config/fish/completions/rackwright.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    root = ctx.find_root().command
    click.echo(made(root, {}, "rackwright", "_RACKWRIGHT_COMPLETE").source())

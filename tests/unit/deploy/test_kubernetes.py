"""The manifests are valid, name what exists, and each service has what the guide promises."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rackwright.agent import config as agent
from rackwright.bus.permissions import Role
from rackwright.host.config import options

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
VERSIONS = ("1.30", "1.37")


def objects(*names: str) -> list[dict[str, Any]]:
    """The objects of some files, or of all."""
    texts = [(FOLDER / name).read_text() for name in names or FILES]
    return [one for text in texts for one in yaml.safe_load_all(text) if one is not None]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    """Objects of one kind by name."""
    return {one["metadata"]["name"]: one for one in objects() if one["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """What runs: pod specifications by the name of what makes them."""
    kinds = ("StatefulSet", "DaemonSet", "Job")
    return {
        name: one["spec"]["template"]["spec"]
        for kind in kinds
        for name, one in of_kind(kind).items()
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FILES)
def test_manifests_fit_the_schemas(name: str, version: str) -> None:
    for one in objects(name):
        kubernetes_validate.validate(one, version, strict=True)


def test_a_wrong_manifest_is_found() -> None:
    broken = objects("services.yaml")[0] | {"spec": {"ports": "8080"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


@pytest.mark.parametrize("role", Role)
def test_each_service_has_probes_a_budget_and_a_user(role: Role) -> None:
    made = of_kind("StatefulSet")[role]
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [f"rackwright.{role.replace('-', '_')}"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["RACKWRIGHT_USER"] == role
    assert environment["RACKWRIGHT_PASSWORD_FILE"] == f"/credentials/{role}/password"
    budget = of_kind("PodDisruptionBudget")[role]["spec"]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert budget["maxUnavailable"] == 1


def test_nothing_but_the_agent_may_do_more_than_it_needs() -> None:
    for name, pod in pods().items():
        [container] = pod["containers"]
        context = container["securityContext"]
        if name == "node-agent":
            assert context["privileged"]
            continue
        assert pod["securityContext"]["runAsNonRoot"]
        assert context["readOnlyRootFilesystem"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not context["allowPrivilegeEscalation"]
        assert not pod["automountServiceAccountToken"]


def test_settings_exist() -> None:
    known = {str(one.envvar) for one in [*options(), *agent.options()]} | {"SERVER_NAME"}
    named = {one["name"] for pod in pods().values() for one in pod["containers"][0].get("env", [])}
    named |= set(of_kind("ConfigMap")["cell"]["data"])
    assert named - known == set()


def test_whoever_does_not_speak_to_the_bus_speaks_to_nobody() -> None:
    policies = of_kind("NetworkPolicy")
    assert policies["nobody"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    chosen = policies["to-bus"]["spec"]["podSelector"]["matchLabels"]
    for role in Role:
        template = of_kind("StatefulSet")[role]["spec"]["template"]
        assert chosen.items() <= template["metadata"]["labels"].items()

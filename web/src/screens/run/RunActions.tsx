import { type NavigateFunction, useNavigate } from "react-router";
import { retryLabel } from "@/api/executionSummary";
import { useCancel, useFork, usePause, useResume, useRetry } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { RunState } from "@/stream/runState";
import { Button, ButtonLink } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { IconButton } from "@/ui/IconButton";
import type { IconName } from "@/ui/icons";
import { Menu, type MenuItem } from "@/ui/Menu";
import { useBreakpoint } from "@/ui/useMedia";
import { changeObstacle } from "./changeObstacle";
import { editPath } from "./Lineage";

type RunActionsProps = {
  run: RunState;
  /** Its status says that it runs, and nobody runs it. */
  isInterrupted: boolean;
  onFork: () => void;
  /** Makes the changed graph that ran the newest revision of its plan. */
  onKeep: () => void;
  /** Shows the run's stored JSON. */
  onJson: () => void;
  onShare: () => void;
};

/** What can be done with a run: other things while it runs than when it has ended. */
export function RunActions(props: RunActionsProps) {
  return props.run.endedAt ? <EndedActions {...props} /> : <LiveActions {...props} />;
}

function LiveActions(props: RunActionsProps) {
  const { run, isInterrupted, onFork } = props;
  const pause = usePause(run.executionId);
  const resume = useResume(run.executionId);
  const cancel = useCancel(run.executionId);
  const isPaused = run.status === "paused";
  const isNarrow = useBreakpoint("narrow");
  const navigate = useNavigate();
  const mayChange = !isInterrupted && changeObstacle(run) === undefined;
  const others = [
    ...(mayChange ? [changeAction(run.executionId)] : []),
    ...(ranChangedPlan(run) ? [keepAction(props)] : []),
  ];
  const isRequested = isInterrupted || (isPaused && run.pause !== "waiting");
  return (
    <>
      {isRequested ? (
        <Button icon="play" onClick={() => resume.mutate(undefined, { onError: showError })}>
          Resume
        </Button>
      ) : (
        !isPaused && (
          <Button icon="pause" onClick={() => pause.mutate(undefined, { onError: showError })}>
            Pause
          </Button>
        )
      )}
      {isPaused && (
        <Button icon="fork" onClick={onFork}>
          Fork
        </Button>
      )}
      {!isNarrow && others.map((each) => <OtherAction key={each.label} {...each} />)}
      <Button icon="stop" kind="danger" onClick={() => cancel.mutate({}, { onError: showError })}>
        Cancel
      </Button>
      <MoreMenu
        items={[
          ...(isNarrow ? others.map((each) => asMenuItem(each, navigate)) : []),
          ...moreItems(props),
        ]}
      />
    </>
  );
}

function keepAction({ onKeep }: RunActionsProps): OtherActionProps {
  return { label: "Keep in the plan", icon: "tick", onSelect: onKeep };
}

/** Whether its plan is not that of the revision that it names: it is a fork with another graph, or was changed while it ran. */
function ranChangedPlan({ planId, parent, revision, changes }: RunState): boolean {
  return planId !== null && (changes.length > 0 || (parent !== null && revision === null));
}

/** Where its plan is changed: of a run that has ended in words, for a fork. */
function changeAction(executionId: string): OtherActionProps {
  return { label: "Change this run …", icon: "edit", to: `/runs/${executionId}/change` };
}

function EndedActions(props: RunActionsProps) {
  const { run } = props;
  const isNarrow = useBreakpoint("narrow");
  const others = otherActions(props);
  const retry = useRetry(run.executionId);
  const navigate = useNavigate();
  const fork = useFork(run.executionId);
  const hasFailed = run.status !== "completed";
  const then = {
    onSuccess: (made: { execution_id: string }) => navigate(`/runs/${made.execution_id}`),
    onError: showError,
  };
  return (
    <>
      {!isNarrow && others.map((each) => <OtherAction key={each.label} {...each} />)}
      {hasFailed ? (
        <Button
          icon="retry"
          kind="primary"
          onClick={() => retry.mutate({ start: true }, then)}
          disabledReason={retry.isPending ? "Starting …" : undefined}
        >
          {retryLabel(run.status)}
        </Button>
      ) : (
        <Button
          icon="retry"
          kind="primary"
          onClick={() => fork.mutate({ rerun: stepsThatRan(run), start: true }, then)}
          disabledReason={fork.isPending ? "Starting …" : undefined}
        >
          Run again
        </Button>
      )}
      <MoreMenu
        items={[
          ...(isNarrow ? others.map((each) => asMenuItem(each, navigate)) : []),
          asMenuItem(changeAction(run.executionId), navigate),
          ...moreItems(props),
        ]}
      />
    </>
  );
}

/** What leads to another address, or does something here. */
type OtherActionProps = { label: string; icon: IconName } & (
  | { to: string }
  | { onSelect: () => void }
);

/** What can be done with a run that has ended besides the first: buttons where there is room. */
function otherActions(props: RunActionsProps): OtherActionProps[] {
  const { run, onFork } = props;
  return [
    ...(run.planId ? [{ label: "Edit the plan", icon: "edit", to: editPath(run) } as const] : []),
    { label: "Compare", icon: "compare", to: `/runs/compare?a=${run.executionId}` },
    { label: "Fork", icon: "fork", onSelect: onFork },
    ...(ranChangedPlan(run) ? [keepAction(props)] : []),
  ];
}

function OtherAction({ label, icon, ...does }: OtherActionProps) {
  if ("to" in does)
    return (
      <ButtonLink icon={icon} to={does.to}>
        {label}
      </ButtonLink>
    );
  return (
    <Button icon={icon} onClick={does.onSelect}>
      {label}
    </Button>
  );
}

function asMenuItem({ label, icon, ...does }: OtherActionProps, go: NavigateFunction): MenuItem {
  return { label, icon, onSelect: "to" in does ? () => go(does.to) : does.onSelect };
}

/** All steps of the plan that can run again; what was given stays given. */
function stepsThatRan(run: RunState): string[] {
  return [...run.nodes.values()]
    .filter((node) => node.prefix === "" && node.origin !== "given" && node.status !== "linked")
    .map((node) => node.id);
}

function MoreMenu({ items }: { items: MenuItem[] }) {
  return <Menu trigger={<IconButton icon="more" label="More" />} items={items} />;
}

function moreItems({ run, onJson, onShare }: RunActionsProps): MenuItem[] {
  return [
    { label: "Share …", icon: "link", onSelect: onShare },
    { label: "Stored JSON", icon: "braces", onSelect: onJson },
    {
      label: "Copy the run's id",
      icon: "copy",
      onSelect: () => void copyText(run.executionId, "the id"),
    },
  ];
}

import { useNavigate } from "react-router";
import { retryLabel } from "@/api/executionSummary";
import { useCancel, useFork, usePause, useResume, useRetry } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { RunState } from "@/stream/runState";
import { Button, ButtonLink } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { IconButton } from "@/ui/IconButton";
import { Menu, type MenuItem } from "@/ui/Menu";
import { editPath } from "./Lineage";

type RunActionsProps = {
  run: RunState;
  /** Its status says that it runs, and nobody runs it. */
  isInterrupted: boolean;
  onFork: () => void;
  /** Makes what a fork ran the newest revision of its plan. */
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
      <Button icon="stop" kind="danger" onClick={() => cancel.mutate({}, { onError: showError })}>
        Cancel
      </Button>
      <MoreMenu items={moreItems(props)} />
    </>
  );
}

function EndedActions(props: RunActionsProps) {
  const { run, onFork, onKeep } = props;
  // A changed plan is that of no revision.
  const isFork = run.parent !== null && run.planId !== null && run.revision === null;
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
      {run.planId && (
        <ButtonLink icon="edit" to={editPath(run)}>
          Edit the plan
        </ButtonLink>
      )}
      <ButtonLink icon="compare" to={`/runs/compare?a=${run.executionId}`}>
        Compare
      </ButtonLink>
      <Button icon="fork" onClick={onFork}>
        Fork
      </Button>
      {isFork && (
        <Button icon="tick" onClick={onKeep}>
          Keep in the plan
        </Button>
      )}
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
      <MoreMenu items={moreItems(props)} />
    </>
  );
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

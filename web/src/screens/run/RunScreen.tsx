import {
  type CSSProperties,
  type ReactNode,
  useDeferredValue,
  useEffect,
  useRef,
  useState,
} from "react";
import { Link, useNavigate, useParams } from "react-router";
import { errorText } from "@/api/errorText";
import { useFork } from "@/api/mutations";
import { useInterrupted, useResult } from "@/api/queries";
import { showError } from "@/api/showError";
import { Loaded } from "@/inspector/Loaded";
import { RunInspector, type RunTab } from "@/inspector/RunInspector";
import { openQuestions, requestsAt } from "@/inspector/requestFields";
import { StepInspector, type StepTab } from "@/inspector/StepInspector";
import { MakeInputButton } from "@/screens/flows/MakeInput";
import { RunProvider, useRun, useRunConnection, useRunOverview } from "@/stream/RunProvider";
import type { NodeState, RunState } from "@/stream/runState";
import { announce } from "@/ui/announcer";
import { Button } from "@/ui/Button";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { Splitter } from "@/ui/Splitter";
import { useShortcuts } from "@/ui/shortcuts";
import { useBreakpoint } from "@/ui/useMedia";
import { useNow } from "@/ui/useNow";
import { useStoredState } from "@/ui/useStoredState";
import { announcementOf } from "./announcements";
import { BottomPanel } from "./BottomPanel";
import { ChangedPlan } from "./ChangedPlan";
import { ConnectionNote } from "./ConnectionNote";
import { ForkDialog } from "./ForkDialog";
import { useFolding } from "./folding";
import { forkObstacle, outerStep } from "./forkObstacle";
import { KeepInPlan } from "./KeepInPlan";
import { OpenRequest } from "./OpenRequest";
import { PlanApproval, planRequestOf } from "./PlanApproval";
import { PlanMoments } from "./PlanMoments";
import { ResultReader } from "./ResultReader";
import { RunActions } from "./RunActions";
import { RunCanvas } from "./RunCanvas";
import { RunHeader } from "./RunHeader";
import styles from "./RunScreen.module.css";
import { usePlanMoment, useReading, useSelectedStep } from "./runAddress";
import { ShareDialog } from "./ShareDialog";
import { StepLanes } from "./StepLanes";
import { durationOf } from "./stepSummary";

/** One run, while it happens and afterwards. */
export function RunScreen() {
  const { executionId = "" } = useParams();
  return (
    <RunProvider key={executionId} executionId={executionId} waiting={<Loading />}>
      <FollowedRun />
    </RunProvider>
  );
}

function FollowedRun() {
  const { connection, retry } = useRunConnection();
  const isLoaded = useRunOverview().graph !== null;
  if (isLoaded) return <LoadedRun />;
  if (connection.kind !== "refused" && connection.kind !== "lost") return <Loading />;
  return (
    <div className={styles.message}>
      <h1>Run</h1>
      <Note kind="error" alert>
        {connection.kind === "refused"
          ? errorText(connection.error)
          : "The service does not answer."}{" "}
        <Button small onClick={retry}>
          Try again
        </Button>
      </Note>
      <Link to="/runs">All runs</Link>
    </div>
  );
}

function Loading() {
  return (
    <div className={styles.message}>
      <Skeleton label="Loading the run" lines={6} />
    </div>
  );
}

function LoadedRun() {
  const run = useRunOverview();
  const now = useNow(run.endedAt === null);
  const isInterrupted = useInterrupted(run.status === "executing" ? run.executionId : null);
  const [selected, select] = useSelectedStep(run);
  const [isReading, read] = useReading();
  const [isKeeping, setKeeping] = useState(false);
  const [isSharing, setSharing] = useState(false);
  const [forking, setForking] = useState<{ path: string | null } | null>(null);
  const [runTab, setRunTab] = useState<RunTab>("result");
  useAnnouncements(run);
  const [screen, moveOn] = useMoveOn(selected?.path ?? null, select);
  usePageTitle(run.title || "Run");
  const showJson = () => {
    select(null);
    setRunTab("json");
  };
  const actions = (
    <>
      <ConnectionNote />
      <RunActions
        run={run}
        isInterrupted={isInterrupted}
        onFork={() => setForking({ path: selected ? outerStep(selected.path) : null })}
        onKeep={() => setKeeping(true)}
        onJson={showJson}
        onShare={() => setSharing(true)}
      />
    </>
  );
  return (
    <div className={styles.screen} ref={screen}>
      <RunHeader run={run} isInterrupted={isInterrupted} now={now} actions={actions} />
      {isReading ? (
        <RunResultReader run={run} onClose={() => read(false)} onShare={() => setSharing(true)} />
      ) : (
        <Panels run={run} now={now} selectedPath={selected?.path ?? null} onSelect={select}>
          {selected ? (
            <SelectedStep
              run={run}
              node={selected}
              now={now}
              onSelect={select}
              onAnswered={moveOn}
              onFork={(path) => setForking({ path })}
            />
          ) : (
            <RunInspector
              run={run}
              request={planRequestOf(run) && <PlanApproval run={run} now={now} />}
              tab={runTab}
              onTab={setRunTab}
              onSelect={select}
              onRead={() => read(true)}
              onWords={(words) =>
                run.planId !== null && <MakeInputButton planId={run.planId} words={words} />
              }
            />
          )}
        </Panels>
      )}
      {isKeeping && run.planId !== null && (
        <KeepInPlan run={run} planId={run.planId} onClose={() => setKeeping(false)} />
      )}
      <ShareDialog
        executionId={run.executionId}
        open={isSharing}
        onClose={() => setSharing(false)}
      />
      {forking && <ForkDialog run={run} path={forking.path} onClose={() => setForking(null)} />}
    </div>
  );
}

/** The result, over the whole width of the page. */
function RunResultReader(props: { run: RunState; onClose: () => void; onShare: () => void }) {
  const { run, onClose, onShare } = props;
  const result = useResult(run.executionId, run.endedAt !== null);
  useShortcuts("The result", [{ keys: "escape", does: "Back to the run", run: onClose }]);
  if (!run.endedAt)
    return <p className={styles.message}>The result comes here when the run is done.</p>;
  return (
    <Loaded query={result} label="Loading the result">
      {({ result: { nodes }, node_results, missing }) => (
        <ResultReader
          title={run.title || run.goal}
          parts={nodes.map((id) => ({
            id,
            name: run.nodes.get(id)?.name ?? id,
            text: node_results[id] ?? "",
          }))}
          missing={missing.map(({ name }) => name)}
          onClose={onClose}
          onShare={onShare}
        />
      )}
    </Loaded>
  );
}

type PanelsProps = {
  run: RunState;
  now: number;
  selectedPath: string | null;
  onSelect: (path: string | null) => void;
  /** The panel at the right. */
  children: ReactNode;
};

/** Canvas, timeline and inspector, with lines between them that can be dragged. */
function Panels({ run, now, selectedPath, onSelect, children }: PanelsProps) {
  const isPhone = useBreakpoint("phone");
  // A step covers the page there; the run is one of its views.
  const isInside = isPhone && selectedPath === null;
  const [isFollowing, setFollowing] = useState(run.endedAt === null);
  const [width, setWidth] = useStoredState<number>("run.inspector", 408);
  const [height, setHeight] = useStoredState<number>("run.timeline", 224);
  const folding = useFolding();
  const [moment, showMoment] = usePlanMoment(run);
  const plan = { moment, onMoment: showMoment };
  // The timeline may come a frame later than the cards.
  const shown = useDeferredValue(run);
  const sizes = { "--inspector": `${width}px`, "--timeline": `${height}px` } as CSSProperties;
  return (
    <div className={styles.work} style={sizes} data-step-open={selectedPath !== null}>
      <div className={styles.stage}>
        <div className={styles.graph}>
          {run.changes.length > 0 && <PlanMoments run={run} {...plan} />}
          {!isPhone && (
            <div className={styles.canvas}>
              {moment === null && run.graph ? (
                <RunCanvas
                  graph={run.graph}
                  {...{ selectedPath, onSelect }}
                  {...folding}
                  isFollowing={isFollowing}
                  onFollow={run.endedAt === null ? setFollowing : undefined}
                />
              ) : (
                <ChangedPlan {...{ run, moment, selectedPath, onSelect }} />
              )}
            </div>
          )}
        </div>
        <Splitter
          label="Timeline"
          orientation="horizontal"
          size={height}
          smallest={96}
          largest={560}
          onChange={setHeight}
        />
        <BottomPanel
          run={shown}
          {...{ now, selectedPath, onSelect }}
          {...folding}
          {...plan}
          {...(isPhone && {
            steps:
              moment === null ? (
                <StepLanes {...{ selectedPath, onSelect }} {...folding} />
              ) : (
                <ChangedPlan {...{ run, moment, selectedPath, onSelect }} />
              ),
          })}
          {...(isInside && { result: children })}
        />
      </div>
      <Splitter
        label="Step panel"
        orientation="vertical"
        size={width}
        smallest={320}
        largest={760}
        onChange={setWidth}
      />
      {!isInside && children}
    </div>
  );
}

/** Returns a ref for the screen, and a function that selects a step and takes the focus to its panel:
 * the form that had the focus is gone then. */
function useMoveOn(path: string | null, select: (path: string | null) => void) {
  const screen = useRef<HTMLDivElement>(null);
  const isMoving = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another step has another panel
  useEffect(() => {
    if (isMoving.current) screen.current?.querySelector("aside")?.focus({ preventScroll: true });
    isMoving.current = false;
  }, [path]);
  const moveOn = (next: string | null) => {
    isMoving.current = true;
    select(next);
  };
  return [screen, moveOn] as const;
}

type SelectedStepProps = {
  run: RunState;
  node: NodeState;
  now: number;
  onSelect: (path: string | null) => void;
  /** With the step that asks next. */
  onAnswered: (next: string | null) => void;
  onFork: (path: string) => void;
};

const STEP_TABS: readonly StepTab[] = ["input", "prompt", "output", "timing", "json"];

function SelectedStep(props: SelectedStepProps) {
  const { run, now, onSelect, onAnswered, onFork } = props;
  const node = useRun(({ nodes }) => nodes.get(props.node.path)) ?? props.node;
  const [tab, setTab] = useStoredState<StepTab>("run.tab", "output");
  const fork = useFork(run.executionId);
  const navigate = useNavigate();
  const requests = requestsAt(run, node.path);
  const move = (by: 1 | -1) => {
    const paths = [...run.nodes.keys()];
    onSelect(paths[paths.indexOf(node.path) + by] ?? node.path);
  };
  useShortcuts("A step", [
    { keys: "escape", does: "Close the step", run: () => onSelect(null) },
    { keys: "j", does: "Next step", run: () => move(1) },
    { keys: "k", does: "Previous step", run: () => move(-1) },
    ...STEP_TABS.map((each, index) => ({
      keys: String(index + 1),
      does: `Show its ${each === "json" ? "JSON" : each}`,
      run: () => setTab(each),
    })),
  ]);
  const runFromHere = () =>
    fork.mutate(
      { rerun: [node.id], start: true },
      {
        onSuccess: (made) => navigate(`/runs/${made.execution_id}`),
        onError: showError,
      },
    );
  return (
    <StepInspector
      executionId={run.executionId}
      node={node}
      tab={tab}
      onTab={setTab}
      request={
        requests.length > 0 &&
        requests.map((request) => (
          <OpenRequest
            key={request.request_id}
            executionId={run.executionId}
            request={request}
            now={now}
            onAnswered={() => onAnswered(nextAsking(run, request.request_id))}
          />
        ))
      }
      duration={durationOf(node, now)}
      onSelect={onSelect}
      onMove={move}
      onClose={() => onSelect(null)}
      onRunFromHere={runFromHere}
      onFork={() => onFork(node.path)}
      forkObstacle={forkObstacle(run, node)}
    />
  );
}

/** Returns the step of the oldest other question to a person; null, the run itself, without one. */
function nextAsking(run: RunState, answered: string): string | null {
  return openQuestions(run).find((each) => each.request_id !== answered)?.path ?? null;
}

/** Reads out the end of waves, failures, approvals and the end of the run; nothing else. */
function useAnnouncements(run: RunState) {
  const before = useRef(run);
  useEffect(() => {
    const words = announcementOf(before.current, run);
    before.current = run;
    if (words) announce(words);
  }, [run]);
}

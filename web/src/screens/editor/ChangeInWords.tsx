import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import type { GraphDocument, ReplanResponse } from "@/api/types";
import { PlanUnion } from "@/canvas/PlanUnion";
import { planChangeWords, planSteps } from "@/canvas/planSteps";
import { ErrorNote } from "@/screens/ErrorNote";
import type { RunState } from "@/stream/runState";
import { writtenGraph } from "@/stream/writtenChange";
import { announce } from "@/ui/announcer";
import { Button } from "@/ui/Button";
import { TextArea } from "@/ui/Field";
import { formatClock } from "@/ui/format";
import { Note } from "@/ui/Note";
import { Status } from "@/ui/Status";
import { useNow } from "@/ui/useNow";
import styles from "./ChangeRunScreen.module.css";
import { notRunAgain } from "./fixedSteps";
import { Differences, Reach } from "./RevisionDiff";
import { useReplan } from "./useReplan";

type ChangeInWordsProps = {
  run: RunState;
  graph: GraphDocument;
  words: string;
  onWords: (words: string) => void;
  /** Why nothing can be changed now, if so. */
  blocked: string | undefined;
  /** Whether another change came first, as the service has said. */
  isOld: boolean;
  /** Has a model change the run as the words say; undefined for one that has ended. */
  onAsk: (() => void) | undefined;
  /** Lets the run go on with a proposal; of one that has ended, starts a fork with it. */
  onTake: (proposal: ReplanResponse) => void;
  /** Puts a proposal into the editor, where the run goes on. */
  onEdit: (proposal: ReplanResponse) => void;
  /** Forgets what the service has said of the last try. */
  onAgain: () => void;
  /** The header of the page, with the button that does what comes next. */
  header: (action: ReactNode) => ReactNode;
  /** The choice between words and the editor. */
  choice: ReactNode;
  /** What went wrong when the proposal was to be taken. */
  children: ReactNode;
};

/** A change of a run in words: a model writes it beside the present plan, and a person takes it or not. */
export function ChangeInWords(props: ChangeInWordsProps) {
  const { run, graph, words, onWords, blocked, onAgain, header, choice } = props;
  const replan = useReplan(run.executionId, { graph, changes: run.changes.length });
  const { state } = replan;
  const hasEnded = run.endedAt !== null;
  const proposed = state.kind === "proposed" ? state : null;
  const isOld = proposed !== null && (props.isOld || isOvertaken(run, proposed));
  const why = blocked ?? (words.trim() === "" ? "Say what is to be different" : undefined);
  const write = () => {
    onAgain();
    void replan.write(words);
  };
  const send = props.onAsk ?? write;
  const drop = () => {
    onAgain();
    replan.cancel();
  };
  return (
    <div className={styles.words}>
      {header(
        proposed ? (
          <TakeButton
            onTake={() => props.onTake(proposed.proposal)}
            {...{ hasEnded, isOld, blocked }}
          />
        ) : (
          <AskButtons
            onPropose={write}
            onAsk={props.onAsk}
            isWriting={state.kind === "writing"}
            blocked={why}
          />
        ),
      )}
      <div className={styles.bar}>
        {choice}
        <TextArea
          label="What is to be different"
          hint={hintOf(run)}
          rows={2}
          value={words}
          readOnly={state.kind !== "idle"}
          onChange={(event) => onWords(event.target.value)}
          onKeyDown={(event) => sends(event) && state.kind === "idle" && !why && send()}
        />
      </div>
      {state.kind === "idle" && state.error && <ErrorNote error={state.error} />}
      {isOld ? (
        <Note kind="warning" alert>
          Another change of this run came first, so this one is of a plan that it has no more.{" "}
          <Button small onClick={drop}>
            Read the run again, with your words
          </Button>
        </Note>
      ) : (
        props.children
      )}
      <div className={styles.work} data-proposed={proposed !== null}>
        {proposed && (
          <Proposal
            proposal={proposed.proposal}
            before={proposed.before.graph}
            onEdit={isOld || hasEnded ? undefined : () => props.onEdit(proposed.proposal)}
            onDrop={drop}
          />
        )}
        <div className={styles.graph} data-writing={state.kind === "writing"}>
          {state.kind === "writing" && <Writing since={state.startedAt} onCancel={replan.cancel} />}
          <Plans
            run={run}
            before={proposed?.before.graph ?? graph}
            after={proposed?.proposal.graph}
            written={state.kind === "writing" ? state.written : ""}
          />
        </div>
      </div>
    </div>
  );
}

function hintOf(run: RunState): string {
  if (run.endedAt !== null) return "A model writes the change. Nothing starts until you take it.";
  return `A model writes the change, and no step starts meanwhile. What reaches something new is asked first. ${notRunAgain(run)}`;
}

function sends({ key, ctrlKey, metaKey }: KeyboardEvent): boolean {
  return key === "Enter" && (ctrlKey || metaKey);
}

/** Beside the words, so that Enter cannot take what it has just asked for: this button goes when the other comes. */
function AskButtons(props: {
  onPropose: () => void;
  onAsk: (() => void) | undefined;
  isWriting: boolean;
  blocked: string | undefined;
}) {
  const disabled = {
    disabledBy: props.isWriting ? WRITING_ID : undefined,
    disabledReason: props.isWriting ? undefined : props.blocked,
  };
  return (
    <>
      <Button kind={props.onAsk ? undefined : "primary"} onClick={props.onPropose} {...disabled}>
        {props.onAsk ? "Only propose it" : "Write the change"}
      </Button>
      {props.onAsk && (
        <Button kind="primary" keys="Ctrl ↵" onClick={props.onAsk} {...disabled}>
          Change the run
        </Button>
      )}
    </>
  );
}

function TakeButton(props: {
  onTake: () => void;
  hasEnded: boolean;
  isOld: boolean;
  blocked: string | undefined;
}) {
  return (
    <Button
      kind="primary"
      icon={props.hasEnded ? "fork" : undefined}
      onClick={props.onTake}
      disabledReason={props.isOld ? "Read the run again first" : props.blocked}
    >
      {props.hasEnded ? "Fork and run" : "Change the run"}
    </Button>
  );
}

type Proposed = { proposal: ReplanResponse; before: { changes: number } };

/** Whether the run was changed since a proposal was written for it. */
function isOvertaken({ changes, planHash }: RunState, { proposal, before }: Proposed): boolean {
  return changes.length > before.changes && planHash !== proposal.base;
}

const WRITING_ID = "change-is-written";

/** Says that a change is being written and for how long: nobody knows how long it will take. */
function Writing({ since, onCancel }: { since: number; onCancel: () => void }) {
  const now = useNow();
  useEffect(() => announce("A change is being written"), []);
  return (
    <div className={styles.writing} id={WRITING_ID}>
      <Status status="running">A change is being written</Status>
      <span className={styles.clock}>{formatClock(Math.max(0, now - since) / 1000)}</span>
      <Button small icon="stop" onClick={onCancel}>
        Cancel
      </Button>
    </div>
  );
}

type PlansProps = {
  run: RunState;
  before: GraphDocument;
  /** The plan that is proposed. */
  after: GraphDocument | undefined;
  /** What is written of it so far. */
  written: string;
};

/** The plan that runs, and over it the one that is proposed, or as far as it is written. */
function Plans({ run, before, after: proposed, written }: PlansProps) {
  const [chosen, choose] = useState<string | null>(null);
  const after = useMemo(
    () => proposed ?? writtenGraph(before, written),
    [proposed, before, written],
  );
  const { nodes } = run;
  const statusOf = useCallback((id: string) => nodes.get(id)?.status, [nodes]);
  const now = run.endedAt === null ? "The plan as it runs" : "The plan as it ran";
  return (
    <PlanUnion
      label={before === after ? now : `${now}, and as proposed`}
      {...{ before, after, statusOf, chosen }}
      isGhost={proposed === undefined}
      onChoose={choose}
    />
  );
}

type ProposalProps = {
  proposal: ReplanResponse;
  before: GraphDocument;
  onEdit: (() => void) | undefined;
  onDrop: () => void;
};

/** All that a proposal changes, and what the plan would reach by it: it is read before it is taken. */
function Proposal({ proposal, before, onEdit, onDrop }: ProposalProps) {
  const { answer, additions, difference, graph, provider, model } = proposal;
  const panel = useRef<HTMLElement>(null);
  const words = planChangeWords(planSteps(before, graph)) || "the same steps, connected otherwise";
  useEffect(() => {
    announce(`The change is written: ${words}`);
    // The button that had the focus is gone; what takes its place must not be pressed by the same key.
    if (document.activeElement === document.body) panel.current?.focus();
  }, [words]);
  const isLost = ({ kind }: { kind: string }) => kind === "safeguard";
  return (
    <aside className={styles.proposal} aria-label="The proposal" ref={panel} tabIndex={-1}>
      <h2>The proposal</h2>
      {answer && <p dir="auto">{answer}</p>}
      <p className={styles.by}>
        {words}, by {model || provider}
      </p>
      <Reach
        words="It would do or reach what the plan does not yet:"
        additions={additions.filter((each) => !isLost(each))}
      />
      <Reach words="It would lose what guards the plan:" additions={additions.filter(isLost)} />
      <Differences diff={difference} graph={graph} isWhole />
      <div className={styles.choices}>
        {onEdit && (
          <Button small icon="edit" onClick={onEdit}>
            Edit it first
          </Button>
        )}
        <Button small onClick={onDrop}>
          Drop it
        </Button>
      </div>
    </aside>
  );
}

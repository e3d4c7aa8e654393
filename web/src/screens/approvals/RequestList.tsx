import { type RefObject, useMemo } from "react";
import { Link } from "react-router";
import { statusesByWave } from "@/api/executionSummary";
import type { ExecutionDigest, PendingRequest } from "@/api/types";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { answerWords, statusOfAnswer } from "@/inspector/answerWords";
import { readRequest } from "@/inspector/requestFields";
import { classes } from "@/ui/classes";
import { formatMoment } from "@/ui/format";
import { plainLine } from "@/ui/plainLine";
import { StatusIcon } from "@/ui/Status";
import { useNow } from "@/ui/useNow";
import { TAB, type Tab } from "./inboxTab";
import styles from "./RequestList.module.css";
import { keyOf, runTitleOf, timeLeft, titleOf } from "./requestWords";

type RequestListProps = {
  requests: readonly PendingRequest[];
  tab?: Tab;
  digests: ReadonlyMap<string, ExecutionDigest>;
  chosen: string | null;
  /** The row that is chosen, to move the focus to it. */
  chosenRow: RefObject<HTMLAnchorElement | null>;
  /** The request is opened, not only looked at in passing. */
  onOpen: () => void;
};

/** The open requests, or the answered ones, in the order of the service. */
export function RequestList(props: RequestListProps) {
  const { requests, tab = "waiting", digests, chosen, chosenRow, onOpen } = props;
  const place = tab === "waiting" ? "" : `${TAB}=${tab}&`;
  return (
    <ul className={styles.list}>
      {requests.map((request) => {
        const key = keyOf(request);
        return (
          <li key={key}>
            <Link
              ref={key === chosen ? chosenRow : undefined}
              to={`?${place}request=${encodeURIComponent(key)}`}
              className={classes(styles.row, key === chosen && styles.chosen)}
              aria-current={key === chosen}
              onClick={onOpen}
            >
              <Row request={request} digest={digests.get(request.execution_id)} />
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

type RowProps = { request: PendingRequest; digest: ExecutionDigest | undefined };

function Row({ request, digest }: RowProps) {
  const fields = useMemo(() => readRequest(request), [request]);
  const { answered } = request;
  return (
    <>
      <StatusIcon status={answered ? statusOfAnswer(answered) : "waiting"} />
      <span className={styles.title}>{titleOf(request, fields)}</span>
      {answered ? (
        <span className={styles.left}>{formatMoment(new Date(answered.at))}</span>
      ) : (
        <TimeLeft request={request} />
      )}
      <span className={styles.prompt}>
        {answered ? answerWords(answered) : plainLine(fields.prompt)}
      </span>
      <span className={styles.run}>
        <span className={styles.glyph}>
          {digest && <WaveGlyph waves={statusesByWave(digest)} />}
        </span>
        <span>{runTitleOf(request)}</span>
      </span>
    </>
  );
}

function TimeLeft({ request }: { request: PendingRequest }) {
  const { words, isSoon } = timeLeft(request, useNow(request.deadline !== null));
  return (
    <span className={styles.left} data-soon={isSoon}>
      {words}
    </span>
  );
}

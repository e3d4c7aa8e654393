import type { ReactNode } from "react";
import { Link } from "react-router";
import type { PendingRequest } from "@/api/types";
import { askingPath } from "@/stream/calls";
import { formatInstant } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { TAB, type Tab } from "./inboxTab";
import styles from "./RequestDetail.module.css";
import { runTitleOf } from "./requestWords";

type RequestHeaderProps = {
  request: PendingRequest;
  title: string;
  status: ReactNode;
  /** The list that the request is in. */
  tab?: Tab;
  /** Its title is that of the page. */
  isPage: boolean;
  onMove: (step: 1 | -1) => void;
};

/** The name of a request, whether it is open, and what asks. */
export function RequestHeader(props: RequestHeaderProps) {
  const { request, title, status, tab = "waiting", isPage, onMove } = props;
  const Title = isPage ? "h1" : "h2";
  const path = request.path && askingPath(request.path, request.request);
  const step = path ? `?step=${encodeURIComponent(path)}` : "";
  return (
    <header className={styles.header}>
      <Link
        to={tab === "waiting" ? "/approvals" : `/approvals?${TAB}=${tab}`}
        className={styles.back}
      >
        <Icon name="left" small />
        All approvals
      </Link>
      <div className={styles.top}>
        <Title>{title}</Title>
        <IconButton icon="left" label="Previous request" keys="K" onClick={() => onMove(-1)} />
        <IconButton icon="right" label="Next request" keys="J" onClick={() => onMove(1)} />
      </div>
      <p className={styles.meta}>
        {status}
        <Link to={`/runs/${request.execution_id}${step}`}>{runTitleOf(request)}</Link>
        <span>asked {formatInstant(new Date(request.since))}</span>
      </p>
    </header>
  );
}

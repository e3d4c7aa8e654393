import { useStore, useViewport } from "@xyflow/react";
import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "./LaneOverlay.module.css";
import type { Lane } from "./layout";

type LaneOverlayProps = {
  lanes: readonly Lane[];
  laneWidth: number;
  /** The wave at work, drawn with a wash of colour. */
  activeWave?: number | undefined;
  /** What stands at the top of a lane beside "Wave n". */
  header: (lane: Lane) => ReactNode;
};

/** Lanes behind the cards of a canvas; they move with it, their headers stay above the cards. */
export function LaneOverlay({ lanes, laneWidth, activeWave, header }: LaneOverlayProps) {
  const { x, zoom } = useViewport();
  const frame = useStore((state) => state.width);
  const width = laneWidth * zoom;
  const columns = lanes.map((lane) => ({
    lane,
    state: classes(styles.lane, lane.wave === activeWave && styles.active),
    style: { transform: `translateX(${lane.x * zoom + x}px)`, width },
  }));
  return (
    <>
      <div className={styles.lanes}>
        {columns.map(({ lane, state, style }) => (
          <div key={lane.wave} className={state} style={style} />
        ))}
      </div>
      {width >= SHORTEST_HEADER && (
        <div className={styles.headers}>
          {columns.map(({ lane, state, style }) => (
            <div key={lane.wave} className={state} style={style}>
              <div className={styles.header} style={paddings(lane.x * zoom + x, width, frame)}>
                <b>Wave {lane.wave}</b>
                {width >= FULL_HEADER && header(lane)}
              </div>
            </div>
          ))}
        </div>
      )}
    </>
  );
}

const PADDING = 16;

/** The words of a lane that begins or ends out of sight stay in sight. */
function paddings(start: number, width: number, frame: number) {
  const most = Math.max(PADDING, width - SHORTEST_HEADER);
  const padding = (hidden: number) => Math.min(PADDING + Math.max(0, hidden), most);
  return { paddingLeft: padding(-start), paddingRight: padding(start + width - frame) };
}

/** Narrower lanes, in px, have no room for "Wave 12". */
const SHORTEST_HEADER = 72;
/** Narrower lanes, in px, have no room for more than "Wave 12". */
const FULL_HEADER = 220;

import { Panel } from "@xyflow/react";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import type { CanvasView } from "./useCanvasView";
import styles from "./ZoomTools.module.css";

type ZoomToolsProps = {
  view: CanvasView;
  position: "bottom-right" | "bottom-left";
  isFollowing?: boolean | undefined;
  onFollow?: ((isFollowing: boolean) => void) | undefined;
};

/** Zoom, fit, and whether the canvas follows the wave at work. */
export function ZoomTools({ view, position, isFollowing = false, onFollow }: ZoomToolsProps) {
  return (
    <Panel position={position} className={styles.tools}>
      {onFollow && (
        <Button
          kind="quiet"
          small
          icon="follow"
          aria-pressed={isFollowing}
          onClick={() => onFollow(!isFollowing)}
        >
          Follow
        </Button>
      )}
      <IconButton icon="remove" label="Zoom out" keys="-" small onClick={() => view.zoom(-1)} />
      <IconButton icon="add" label="Zoom in" keys="+" small onClick={() => view.zoom(1)} />
      <IconButton icon="fit" label="Fit" keys="F" small onClick={view.fit} />
    </Panel>
  );
}

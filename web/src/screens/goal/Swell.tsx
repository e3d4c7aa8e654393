import styles from "@/screens/goal/GoalScreen.module.css";

const WAVES = Array.from({ length: 8 }, (_, index) => index);

/** The waves behind the question. */
export function Swell() {
  return (
    <svg
      className={styles.swell}
      viewBox="0 0 1440 380"
      preserveAspectRatio="none"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.2"
      aria-hidden="true"
    >
      {WAVES.map((wave) => {
        const y = 70 + 34 * wave;
        const [dip, rise] = [10 + 36 * wave, 130 + 30 * wave];
        return (
          <path
            key={wave}
            vectorEffect="non-scaling-stroke"
            opacity={1 - 0.11 * wave}
            d={`M-40 ${y} C200 ${dip} 420 ${rise} 720 ${y + 8} S1240 ${dip + 10} 1480 ${y + 20}`}
          />
        );
      })}
    </svg>
  );
}

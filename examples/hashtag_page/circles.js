// Where circles stand: near those that they are tied to, near the middle, and not on one another. A circle that was
// there before goes on from where it was, so that a map changes as little as its groups do.

const GAP = 3;
const TO_THE_MIDDLE = 0.02;
const TO_A_TIE = 0.03;
const TURN = Math.PI * (3 - Math.sqrt(5)); // new circles come along a spiral, whose turns do not line up

export class Circles {
  constructor() {
    this.all = new Map(); // by key: {key, x, y, radius}
    this.ties = [];
    this.heat = 0;
  }

  /** Take circles, as [{key, radius}], the largest first, and ties, as [{from, to}], keys of circles. */
  set(circles, ties) {
    const all = new Map();
    circles.forEach(({ key, radius }, place) => {
      const old = this.all.get(key);
      const far = 22 * Math.sqrt(place);
      all.set(key, { key, radius, x: old?.x ?? far * Math.cos(place * TURN), y: old?.y ?? far * Math.sin(place * TURN) });
    });
    this.all = all;
    this.ties = ties.filter(({ from, to }) => all.has(from) && all.has(to));
    this.heat = 1;
  }

  /** Move all a little; returns whether they still move. */
  step() {
    const circles = [...this.all.values()];
    for (const each of circles) {
      each.x -= each.x * TO_THE_MIDDLE * this.heat;
      each.y -= each.y * TO_THE_MIDDLE * this.heat;
    }
    for (const { from, to } of this.ties) {
      const [a, b] = [this.all.get(from), this.all.get(to)];
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const distance = Math.hypot(dx, dy) || 1;
      const pull = Math.max(0, distance - a.radius - b.radius - GAP) * TO_A_TIE * this.heat / distance;
      move(a, b, dx * pull, dy * pull);
    }
    for (let round = 0; round < 2; round += 1) apart(circles);
    this.heat *= 0.97;
    return this.heat > 0.02;
  }

  /** The rectangle that has all of them: {x, y, width, height}. */
  bounds() {
    let [left, top, right, bottom] = [-60, -40, 60, 40];
    for (const { x, y, radius } of this.all.values()) {
      left = Math.min(left, x - radius);
      right = Math.max(right, x + radius);
      top = Math.min(top, y - radius);
      bottom = Math.max(bottom, y + radius);
    }
    return { x: left - GAP, y: top - GAP, width: right - left + 2 * GAP, height: bottom - top + 2 * GAP };
  }
}

/** Push circles apart that touch one another. */
function apart(circles) {
  for (let one = 0; one < circles.length; one += 1) {
    for (let other = one + 1; other < circles.length; other += 1) {
      const [a, b] = [circles[one], circles[other]];
      const [dx, dy] = [b.x - a.x || 0.01, b.y - a.y || 0.01];
      const distance = Math.hypot(dx, dy);
      const over = a.radius + b.radius + GAP - distance;
      if (over > 0) move(a, b, -dx * over / distance, -dy * over / distance);
    }
  }
}

/** Move two circles towards each other by so much together, the smaller one more. */
function move(a, b, dx, dy) {
  const [weightA, weightB] = [a.radius * a.radius, b.radius * b.radius];
  const share = weightB / (weightA + weightB);
  a.x += dx * share;
  a.y += dy * share;
  b.x -= dx * (1 - share);
  b.y -= dy * (1 - share);
}

"""Playing a scene, instant by instant."""
